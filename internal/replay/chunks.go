package replay

import "unsafe"

// chunks are rows of equal width, in pieces: they grow without being copied, which costs
// more than to read them. The first are on the heap, those beyond most bytes in pages.
type chunks[T any] struct {
	width  int
	n      int // rows
	pieces [][]T
	most   int // bytes on the heap; 0: heapBytes
	pages  *pages
}

const (
	chunkRows = 1024    // rows of a piece
	heapBytes = 4 << 20 // of chunks on the heap, where pages are to be had
)

// add appends a row, whose cells are not set.
func (c *chunks[T]) add() []T {
	if c.n == len(c.pieces)*chunkRows {
		c.pieces = append(c.pieces, c.piece())
	}
	c.n++
	return c.row(c.n - 1)
}

// piece returns room for more rows.
func (c *chunks[T]) piece() []T {
	var cell T
	cells := chunkRows * c.width
	size := cells * int(unsafe.Sizeof(cell))
	most := heapBytes
	if c.most > 0 {
		most = c.most
	}
	if size > 0 && len(c.pieces)*size >= most {
		if c.pages == nil {
			c.pages = &pages{}
		}
		if b := c.pages.take(size); b != nil {
			return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), cells)
		}
	}
	return make([]T, cells)
}

// row returns row i, valid as long as c is.
func (c *chunks[T]) row(i int) []T {
	at := int(uint(i)%chunkRows) * c.width
	return c.pieces[uint(i)/chunkRows][at : at+c.width]
}

// cut drops all rows but the first n; the next one has their cells.
func (c *chunks[T]) cut(n int) { c.n = n }
