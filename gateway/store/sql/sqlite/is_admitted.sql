SELECT 1 FROM grants WHERE kind = 'talk' AND tool = ? AND revoked_at IS NULL
