UPDATE threads SET workspace = ?, conversation = ? WHERE channel = ? AND workspace = ? AND conversation = ?
