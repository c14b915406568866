"""Slack: threads, cards in Block Kit, Socket Mode or HTTP."""
