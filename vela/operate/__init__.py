"""Runs the two engines, Pulumi and Ansible, and reconciles what they say."""
