module hookyard

go 1.19
