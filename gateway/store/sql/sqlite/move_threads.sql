UPDATE OR IGNORE threads SET workspace = ?, conversation = ? WHERE channel = ? AND workspace = ? AND conversation = ?
