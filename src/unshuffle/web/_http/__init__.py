"""The server: requests, who may make them, and how errors are answered."""
