"""Everything that is made for people: commands, pages, pictures, the server."""
