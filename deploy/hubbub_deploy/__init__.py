"""What joins the parts: the hubbub command, the embedded node, the demo."""
