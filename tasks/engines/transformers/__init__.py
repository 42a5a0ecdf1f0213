"""Engine that runs Transformers in this process."""
