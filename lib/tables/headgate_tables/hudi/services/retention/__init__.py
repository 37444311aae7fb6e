"""What may go and when: retained commits, cleaning, archiving."""
