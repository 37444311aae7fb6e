"""What runs an owned table: its cores are fed, its slot work is done on a thread, the store is asked."""
