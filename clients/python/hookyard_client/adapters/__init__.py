"""Hooks of agent SDKs that ask hookyard."""
