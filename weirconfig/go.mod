module github.com/weir-go/weir/weirconfig

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/weir-go/weir v0.0.0
	go.yaml.in/yaml/v4 v4.0.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/weir-go/weir => ../
