"""Chats: messages, and what a model thinks before it answers. No model library is loaded."""
