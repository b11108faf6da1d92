package harm_test

import (
	"testing"

	"github.com/weir-go/weir/proving/internal/harm"
)

func BenchmarkJudge(b *testing.B) {
	for i := uint64(0); b.Loop(); i++ {
		g := &harm.Genes{Seed: 7<<20 + i}
		harm.Judge(g.World(), 1, harm.Guards()[:2])
	}
}
