package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
)

// A page in a package variable is used with the real clock, and then in one bubble after the other.
func TestAPageStartsAgainWithEachClock(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	page := newDefaultPage(gate)
	body := func() string {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/snapshot.json", http.NoBody))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	before := body()
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			first := body()
			require.NotEqual(t, before, first)
			time.Sleep(time.Minute)
			before = body()
			require.NotEqual(t, first, before)
		})
	}
	require.NotEqual(t, before, body())
}

func TestTheQueryOfASourceIsParsedStrictly(t *testing.T) {
	page := newDefaultPage(weir.New("shop", weir.Config{}))
	for query, want := range map[string]int{
		"": 400, "id": 400, "id=": 400, "id=a&id=b": 400, "id=a&x=1": 400, "id=%zz": 400, "id=a;b": 400, "id=a": 404,
	} {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/source.json?"+query, http.NoBody))
		require.Equal(t, want, w.Code, query)
	}
}
