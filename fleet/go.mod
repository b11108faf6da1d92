module github.com/weir-go/weir/fleet

go 1.26.0

require (
	github.com/redis/go-redis/v9 v9.20.1
	github.com/stretchr/testify v1.7.2
	github.com/weir-go/weir v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/weir-go/weir => ..
