package main

import (
	"encoding/xml"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPictureHasTheLinesWhenTheyCame(t *testing.T) {
	type text struct {
		X      int    `xml:"x,attr"`
		Y      int    `xml:"y,attr"`
		Length int    `xml:"textLength,attr"`
		Style  string `xml:"style,attr"`
		Line   string `xml:",chardata"`
	}
	var picture struct {
		Width  int    `xml:"width,attr"`
		Height int    `xml:"height,attr"`
		Label  string `xml:"aria-label,attr"`
		Texts  []text `xml:"text"`
	}

	require.NoError(t, xml.Unmarshal([]byte(draw([]line{
		{text: "$ make <it>"}, {text: ""}, {text: "  a & b", after: 1500 * time.Millisecond},
	})), &picture))

	require.Equal(t, []text{
		{X: 16, Y: 29, Length: 88, Style: "animation-delay: 0.0s", Line: "$ make <it>"},
		{X: 32, Y: 65, Length: 40, Style: "animation-delay: 1.5s", Line: "a & b"},
	}, picture.Texts)
	require.Equal(t, 2*16+11*8, picture.Width)
	require.Equal(t, 2*16+3*18, picture.Height)
	require.Equal(t, "the output of make <it>", picture.Label)
}
