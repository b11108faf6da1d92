package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/weirconfig"
)

// TestMain runs the program itself in a process that a test has started.
func TestMain(m *testing.M) {
	if os.Getenv("SHOP_PROCESS") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// manifest is what the tests need of both objects in shop.yaml.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct {
			Spec struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				Containers                    []struct {
					Args  []string
					Ports []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					ReadinessProbe struct {
						HTTPGet struct {
							Path, Port string
						} `yaml:"httpGet"`
						PeriodSeconds    int `yaml:"periodSeconds"`
						FailureThreshold int `yaml:"failureThreshold"`
					} `yaml:"readinessProbe"`
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name      string
					ConfigMap struct{ Name string } `yaml:"configMap"`
				}
			}
		}
	}
}

func readManifest(t *testing.T) (config, deployment manifest) {
	t.Helper()
	text, err := os.ReadFile("shop.yaml")
	require.NoError(t, err)
	first, second, both := strings.Cut(string(text), "\n---\n")
	require.True(t, both)
	require.NoError(t, yaml.Unmarshal([]byte(first), &config))
	require.NoError(t, yaml.Unmarshal([]byte(second), &deployment))
	require.Equal(t, "ConfigMap", config.Kind)
	require.Equal(t, "Deployment", deployment.Kind)
	return config, deployment
}

func TestThePageHasTheManifest(t *testing.T) {
	text, err := os.ReadFile("shop.yaml")
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/kubernetes.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```yaml\n"+string(text)+"```")
}

func TestTheManifestFitsTheProgram(t *testing.T) {
	config, deployment := readManifest(t)
	_, err := weirconfig.Parse("weir.yaml", []byte(config.Data["weir.yaml"]))
	require.NoError(t, err)

	pod := deployment.Spec.Template.Spec
	shop := pod.Containers[0]
	require.Equal(t, config.Metadata.Name, pod.Volumes[0].ConfigMap.Name)
	require.Equal(t, pod.Volumes[0].Name, shop.VolumeMounts[0].Name)
	require.Contains(t, shop.Args, "-config="+shop.VolumeMounts[0].MountPath+"/weir.yaml")
	ports := map[string]int{}
	for _, p := range shop.Ports {
		ports[p.Name] = p.ContainerPort
	}
	require.Equal(t, map[string]int{"http": 8080, "internal": 9090}, ports, "the defaults of -listen and -internal")
	require.Equal(t, "internal", shop.ReadinessProbe.HTTPGet.Port)
	require.Equal(t, "/health/ready", shop.ReadinessProbe.HTTPGet.Path, "as the next test asks")

	const drain = 5 // seconds, the default of -drain
	require.Less(t, 2*shop.ReadinessProbe.PeriodSeconds*shop.ReadinessProbe.FailureThreshold, drain)
	require.Greater(t, time.Duration(pod.TerminationGracePeriodSeconds)*time.Second, stopTimeout)
}

// mount does what Kubernetes does with a ConfigMap: the file is a link through ..data, which is
// replaced in one step.
func mount(t *testing.T, dir, text string) {
	t.Helper()
	data := filepath.Join(dir, "..2026_"+rand.Text())
	require.NoError(t, os.Mkdir(data, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "weir.yaml"), []byte(text), 0o600))
	require.NoError(t, os.Symlink(filepath.Base(data), filepath.Join(dir, "..data_tmp")))
	require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	if _, err := os.Lstat(filepath.Join(dir, "weir.yaml")); err != nil {
		require.NoError(t, os.Symlink("..data/weir.yaml", filepath.Join(dir, "weir.yaml")))
	}
}

// get returns the status and the body, or 0 and the error.
func get(ctx context.Context, url string) (status int, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// eventually waits until holds returns true, because another process runs in real time.
func eventually(t *testing.T, holds func() bool, what string) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, 20*time.Millisecond, what)
}

// TestTheProgramInAPod starts the program with the manifest's configuration, changes the
// configuration, and stops the program while a request is in progress.
func TestTheProgramInAPod(t *testing.T) {
	config, _ := readManifest(t)
	dir, charged, answer := t.TempDir(), make(chan struct{}, 1), make(chan struct{})
	mount(t, dir, config.Data["weir.yaml"])
	payments := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		charged <- struct{}{}
		<-answer
		_, _ = io.WriteString(w, "paid")
	}))
	defer payments.Close()
	customers, internal := freeAddr(t), freeAddr(t)
	program := exec.CommandContext(t.Context(), os.Args[0], "-config="+filepath.Join(dir, "weir.yaml"),
		"-payments="+payments.URL, "-listen="+customers, "-internal="+internal, "-drain=300ms")
	program.Env, program.Stderr = append(os.Environ(), "SHOP_PROCESS=1"), os.Stderr
	require.NoError(t, program.Start())
	eventually(t, func() bool { status, _ := get(t.Context(), "http://"+internal+"/health/ready"); return status == 200 }, "ready")
	limit := func(tokens int) bool {
		_, text := get(t.Context(), "http://"+internal+"/metrics")
		return strings.Contains(text, fmt.Sprintf("weir_limiter_limit{weir_limiter_name=\"payments\"} %d\n", tokens))
	}
	require.True(t, limit(20))
	mount(t, dir, strings.ReplaceAll(config.Data["weir.yaml"], "burst: 20", "burst: 7"))
	eventually(t, func() bool { return limit(7) }, "the new burst")

	answered := make(chan string, 1)
	go func() {
		status, text := get(t.Context(), "http://"+customers)
		answered <- fmt.Sprint(status, " ", text)
	}()
	<-charged
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	eventually(t, func() bool { status, _ := get(t.Context(), "http://"+internal+"/health/ready"); return status == 503 }, "not ready")
	close(answer)
	require.Equal(t, "200 paid", <-answered)
	require.NoError(t, program.Wait(), "exit status 0")
}

// freeAddr returns an address on which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	return s.Listener.Addr().String()
}
