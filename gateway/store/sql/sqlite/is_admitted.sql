SELECT 1 FROM grants WHERE agent = '' AND kind = 'talk' AND tool = ? AND revoked_at IS NULL
