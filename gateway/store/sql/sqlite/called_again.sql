UPDATE sessions SET root_call = ?, only_tools = ? WHERE id = ?
