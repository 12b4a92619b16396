"""What the views share: workspaces, jobs, history, files, pictures."""
