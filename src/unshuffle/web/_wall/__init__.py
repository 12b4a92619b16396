"""The view of one wall."""
