package browser_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestNamesAreShownAsText(t *testing.T) {
	b, s := newTab(t), serve(t, quickConfig, openBreaker(t, hostileName))
	b.visit(s)
	want := strings.ReplaceAll(hostileName, "\n", " ")
	require.Equal(t, want, b.text(".sources tbody bdi"))
	b.click(".sources tbody a")
	b.waitUntil(`document.querySelector("h1 bdi")`)
	require.Equal(t, hostileName, eval[string](b, `document.querySelector("h1").textContent`))
	require.Zero(t, eval[int](b, `document.images.length`))
}

// The message of an error comes from elsewhere, so it is as hostile as a name.
func TestPageSaysWhyCallsAreRefused(t *testing.T) {
	post := breaker.New("post", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
	b, s := newTab(t), serve(t, quickConfig, post)
	b.visit(s)
	b.click(".sources tbody a")
	b.requireText("h1", "post")
	require.True(t, eval[bool](b, `document.querySelector(".reason").closest("section").hidden`))

	_ = post.Run(t.Context(), func(context.Context) error { return errors.New(hostileName) })
	b.requireText(".reason", "failure rate 100% of 1 calls")
	require.Contains(t, b.text("[aria-label='Last failures']"), "<img src=x onerror=alert(1)>")
	require.Zero(t, eval[int](b, `document.images.length`))

	post.Reset()
	b.waitUntil(`document.querySelector(".reason").closest("section").hidden`)
}
