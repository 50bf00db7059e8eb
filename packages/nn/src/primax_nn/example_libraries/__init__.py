"""Small libraries that show how models and their training are built of functions."""
