package striped

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two additions collide when the second one changes the word after the first one has read it.
func TestOnlyAnAdditionThatCollidesIsStriped(t *testing.T) {
	var c Counter
	read := c.word.Load()
	c.Add(1)
	require.False(t, c.addToWord(read, 1), "the word has changed since it was read")
	require.EqualValues(t, 1, c.Load())

	c.addStriped(1)
	require.False(t, c.addToWord(c.word.Load(), 1), "a striped counter adds to stripes alone")
	c.Add(1)
	require.EqualValues(t, 1, c.Word())
	require.EqualValues(t, 3, c.Load())
}
