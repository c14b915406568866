"""Discord, on discord.py."""
