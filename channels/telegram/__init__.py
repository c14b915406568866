"""Telegram. `channels.telegram.adapter.TelegramChannel` is the way in; nothing is imported before it is used."""
