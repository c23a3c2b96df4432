package images

import "flag"

var (
	buildPython = flag.Bool("python", false, "build the python image")
	keepStore   = flag.String("store", "", "build into this store instead of a temporary one")
)
