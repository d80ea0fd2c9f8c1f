package replay

import "unsafe"

// chunks are rows of equal width, in pieces: they grow without being copied, which costs
// more than to read them. The first are on the heap, those beyond most bytes in pages, to
// which they are copied many at once.
type chunks[T any] struct {
	width  int
	n      int // rows
	pieces [][]T
	batch  []T // of the last pieces, which are not in pages yet
	most   int // bytes on the heap; 0: heapBytes
	pages  *pages
}

const (
	chunkRows  = 1024      // rows of a piece
	heapBytes  = 128 << 20 // of chunks on the heap, where pages are to be had: writing a row to a file takes a fifth of what playing it does
	batchBytes = 2 << 20   // that are put into pages at once
)

// add appends a row, whose cells are to be set before another is added.
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
	cells, most := chunkRows*c.width, heapBytes
	if c.most > 0 {
		most = c.most
	}
	size := max(1, cells*int(unsafe.Sizeof(cell)))
	heap, many := max(1, most/size), max(1, min(most, batchBytes)/size) // pieces on the heap, and of a batch
	if cells == 0 || len(c.pieces) < heap {
		return make([]T, cells)
	}
	k := (len(c.pieces) - heap) % many
	if k == 0 {
		c.next(many * cells)
	}
	return c.batch[k*cells : (k+1)*cells]
}

// next begins the next batch, of so many cells: in the memory of the last, if that can be
// put into pages.
func (c *chunks[T]) next(cells int) {
	if c.batch != nil {
		if c.pages == nil {
			c.pages = &pages{}
		}
		b := c.pages.put(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(c.batch))), cells*int(unsafe.Sizeof(c.batch[0]))))
		if b != nil {
			kept := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), cells)
			for size, i := chunkRows*c.width, len(c.pieces); len(kept) > 0; kept = kept[:len(kept)-size] {
				i--
				c.pieces[i] = kept[len(kept)-size:]
			}
			return
		}
	}
	c.batch = make([]T, cells)
}

// row returns row i, valid as long as c is.
func (c *chunks[T]) row(i int) []T {
	at := int(uint(i)%chunkRows) * c.width
	return c.pieces[uint(i)/chunkRows][at : at+c.width]
}

// cut drops all rows but the first n; the next one has their cells.
func (c *chunks[T]) cut(n int) { c.n = n }
