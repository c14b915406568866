"""Telegram. The way in is `channels.telegram.adapter.TelegramChannel`; nothing is imported before its use."""
