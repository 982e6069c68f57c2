"""What several tests share: a server in a thread, a stand-in backend, pictures made in memory."""
