UPDATE sessions SET workspace = ?, conversation = ? WHERE channel = ? AND workspace = ? AND conversation = ?
