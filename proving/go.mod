module github.com/weir-go/weir/proving

go 1.26.0

replace github.com/weir-go/weir => ../
