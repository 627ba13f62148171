"""Trained models as folders for others: export, model card, data trained on."""
