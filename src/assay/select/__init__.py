"""What models say of data: which tasks to practise, demonstrations of teachers, membership."""
