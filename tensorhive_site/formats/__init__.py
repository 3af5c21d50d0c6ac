"""How the console writes dates and times; see FORMAT_MODULE_PATH."""
