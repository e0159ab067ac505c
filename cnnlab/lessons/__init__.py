"""What one lesson alone needs: its exercises, its experiments, its drawings; one file a lesson."""
