package codec

// AppendStored appends the reply to an outcome that is in the log: {"id",
// "stored": true}, as JSON or MessagePack.
func AppendStored(dst []byte, id string, json bool) []byte {
	if json {
		dst = append(dst, `{"id":`...)
		dst = jsonText(dst, id)
		return append(dst, `,"stored":true}`...)
	}
	dst = appendMap(dst, 2)
	dst = appendText(appendKey(dst, "id"), id)
	return appendBool(appendKey(dst, "stored"), true)
}
