# torch.sh: install PyTorch's build that a lock names; sourced by scripts that have a function `fail`.

# The address of CPU wheels that PyTorch's installation page names.
pytorch_cpu=https://download.pytorch.org/whl/cpu

# install_torch PYTHON LOCK: from the index that pip is set to, else, for a CPU build, from PyTorch's own or from
# TORCH_INDEX if that is set. PyPI has no CPU builds.
install_torch() {
    torch=$(sed -n 's/^\(torch==[^ ;]*\).*/\1/p' "$2")
    set -- "$1" -m pip install --quiet --quiet --disable-pip-version-check --no-deps "$torch"
    case $torch in
    *+cpu)
        index=${TORCH_INDEX:-$pytorch_cpu}
        "$@" 2>/dev/null || "$@" --extra-index-url "$index" ||
            fail "$torch is neither in the package index that pip is set to nor in $index (see above).
Where neither can be reached, run the same command again with TORCH_INDEX=<URL of an index of PyTorch's CPU wheels>.
On a machine with CUDA, use TARGET=gpu."
        ;;
    *) "$@" || fail "$torch could not be installed (see above)" ;;
    esac
}
