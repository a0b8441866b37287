package slab

import "sync"

// blockSizes are the sizes of blocks.
var blockSizes = [...]int{256, 512, 1024, 1536, 2048, MaxBlock}

// MaxBlock is the largest size of a Block.
const MaxBlock = 4096

// blocks has the free blocks of each size. Everybody shares them, so that a block is
// likely to be in the processor's cache.
var blocks [len(blockSizes)]sync.Pool

// Block is memory for one small payload. It has one owner.
type Block struct {
	B     []byte
	class int
}

// GetBlock returns a block of at least n bytes, at most MaxBlock, whose contents
// are arbitrary.
func GetBlock(n int) *Block {
	class := 0
	for blockSizes[class] < n {
		class++
	}
	b, _ := blocks[class].Get().(*Block)
	if b == nil {
		b = &Block{B: make([]byte, blockSizes[class]), class: class}
	}
	return b
}

// Free gives b back; neither b nor its memory may be used any more.
func (b *Block) Free() { blocks[b.class].Put(b) }
