package wire

// media is one image, audio clip, video or document of a request.
type media struct {
	kind          mediaKind
	detail        byte  // first letter of low, high, auto, original; 0 if not said
	width, height int32 // 0 if unknown
	bytes         int   // decoded size; 0 if it is not in the body
}

type mediaKind uint8
