UPDATE grants SET revoked_at = ? WHERE id = ? AND kind <> 'talk' AND revoked_at IS NULL
