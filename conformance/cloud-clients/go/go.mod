module uturn.dev/conformance/cloud-clients

go 1.26.0

require (
	github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/clb v1.3.133
	github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common v1.3.209
)
