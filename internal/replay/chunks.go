package replay

// chunks are rows of equal width, in pieces: they grow without being copied, which costs
// more than to read them.
type chunks[T any] struct {
	width  int
	n      int // rows
	pieces [][]T
}

// chunkRows is how many rows a piece has.
const chunkRows = 1024

// add appends a row, whose cells are not set.
func (c *chunks[T]) add() []T {
	if c.n == len(c.pieces)*chunkRows {
		c.pieces = append(c.pieces, make([]T, chunkRows*c.width))
	}
	c.n++
	return c.row(c.n - 1)
}

// row returns row i.
func (c *chunks[T]) row(i int) []T {
	at := int(uint(i)%chunkRows) * c.width
	return c.pieces[uint(i)/chunkRows][at : at+c.width]
}

// cut drops all rows but the first n; the next one has their cells.
func (c *chunks[T]) cut(n int) { c.n = n }
