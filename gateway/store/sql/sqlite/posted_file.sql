SELECT payload FROM deliveries WHERE id = ? AND session_id = ? AND kind = 'notice'
