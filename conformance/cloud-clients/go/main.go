// Drives the CLB API with the Go SDK, whose types are strict: the life of a load balancer with
// POST and with GET, then requests that have to fail, each with its documented code.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	clb "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/clb/v20180317"
	"github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common"
	failure "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common/errors"
	untyped "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common/http"
	"github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common/profile"
)

const (
	running = 2
	done    = 0
)

var steps int

func main() {
	for _, method := range []string{"POST", "GET"} {
		life(connect(method, os.Getenv("CLOUD_KEY")), method)
	}
	failures()
	fmt.Printf("%d steps passed\n", steps)
}

func connect(method, key string) *clb.Client {
	settings := profile.NewClientProfile()
	settings.HttpProfile.Endpoint = os.Getenv("CLOUD_ADDRESS")
	settings.HttpProfile.Scheme = "HTTP"
	settings.HttpProfile.ReqMethod = method
	credential := common.NewCredential(os.Getenv("CLOUD_ID"), key)
	client, err := clb.NewClient(credential, "ap-guangzhou", settings)
	check(err)
	return client
}

// text is a pointer to a text, as requests have them.
func text(value string) *string { return common.StringPtr(value) }

func number(value int64) *int64 { return common.Int64Ptr(value) }

// wait waits for the task of a request.
func wait(client *clb.Client, id *string) {
	request := clb.NewDescribeTaskStatusRequest()
	request.TaskId = id
	for {
		answer, err := client.DescribeTaskStatus(request)
		if err != nil {
			fail(err.Error())
		}
		if *answer.Response.Status != running {
			expect(*answer.Response.Status, int64(done), "task")
			steps++
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func life(client *clb.Client, name string) {
	create := clb.NewCreateLoadBalancerRequest()
	create.LoadBalancerType = text("OPEN")
	create.LoadBalancerName = text(name)
	create.ClientToken = text("token-" + name)
	created, err := client.CreateLoadBalancer(create)
	check(err)
	wait(client, created.Response.RequestId)
	lb := created.Response.LoadBalancerIds[0]
	again, err := client.CreateLoadBalancer(create)
	check(err)
	expect(*again.Response.LoadBalancerIds[0], *lb, "the same client token")

	listen := clb.NewCreateListenerRequest()
	listen.LoadBalancerId = lb
	listen.Ports = []*int64{number(80)}
	listen.Protocol = text("HTTP")
	listen.KeepaliveEnable = number(1)
	web := listener(client, listen)
	listen = clb.NewCreateListenerRequest()
	listen.LoadBalancerId = lb
	listen.Ports = []*int64{number(8080)}
	listen.Protocol = text("TCP")
	listen.SnatEnable = common.BoolPtr(true)
	listen.HealthCheck = &clb.HealthCheck{HealthSwitch: number(1), SourceIpType: number(1)}
	tcp := listener(client, listen)

	rule := clb.NewCreateRuleRequest()
	rule.LoadBalancerId = lb
	rule.ListenerId = web
	rule.Rules = []*clb.RuleInput{{Domain: text("a.example"), Url: text("/")}}
	ruled, err := client.CreateRule(rule)
	check(err)
	wait(client, ruled.Response.RequestId)

	register := clb.NewRegisterTargetsRequest()
	register.LoadBalancerId = lb
	register.ListenerId = web
	register.LocationId = ruled.Response.LocationIds[0]
	register.Targets = []*clb.Target{{EniIp: text("10.0.0.9"), Port: number(80)}}
	registered, err := client.RegisterTargets(register)
	check(err)
	wait(client, registered.Response.RequestId)
	batch := clb.NewBatchRegisterTargetsRequest()
	batch.LoadBalancerId = lb
	batch.Targets = []*clb.BatchTarget{
		{ListenerId: tcp, EniIp: text("10.0.0.9"), Port: number(80), Weight: number(20)},
	}
	batched, err := client.BatchRegisterTargets(batch)
	check(err)
	expect(len(batched.Response.FailListenerIdSet), 0, "all are registered")
	wait(client, batched.Response.RequestId)

	describe(client, lb, web, tcp)
	remove(client, lb, web, register)
}

func listener(client *clb.Client, request *clb.CreateListenerRequest) *string {
	answer, err := client.CreateListener(request)
	check(err)
	wait(client, answer.Response.RequestId)
	return answer.Response.ListenerIds[0]
}

func describe(client *clb.Client, lb, web, tcp *string) {
	described := clb.NewDescribeLoadBalancersRequest()
	described.LoadBalancerIds = []*string{lb}
	balancers, err := client.DescribeLoadBalancers(described)
	check(err)
	expect(*balancers.Response.TotalCount, uint64(1), "load balancers")
	expect(*balancers.Response.LoadBalancerSet[0].Status, uint64(1), "status")

	listeners := clb.NewDescribeListenersRequest()
	listeners.LoadBalancerId = lb
	found, err := client.DescribeListeners(listeners)
	check(err)
	for _, listener := range found.Response.Listeners {
		switch *listener.ListenerId {
		case *web:
			expect(*listener.KeepaliveEnable, int64(1), "keepalive")
			expect(*listener.Rules[0].Domain, "a.example", "domain")
		case *tcp:
			expect(*listener.HealthCheck.SourceIpType, int64(1), "where probes come from")
			expect(*listener.AttrFlags[0], "SnatEnable", "flags")
		}
	}

	targets := clb.NewDescribeTargetsRequest()
	targets.LoadBalancerId = lb
	targets.ListenerIds = []*string{tcp}
	bound, err := client.DescribeTargets(targets)
	check(err)
	expect(*bound.Response.Listeners[0].Targets[0].Weight, int64(20), "weight")

	health := clb.NewDescribeTargetHealthRequest()
	health.LoadBalancerIds = []*string{lb}
	states, err := client.DescribeTargetHealth(health)
	check(err)
	for _, listener := range states.Response.LoadBalancers[0].Listeners {
		target := listener.Rules[0].Targets[0]
		expect(*target.IP, "10.0.0.9", "address")
		expect(*target.HealthStatusDetail, *target.HealthStatusDetial, "both spellings")
	}

	quotas, err := client.DescribeQuota(clb.NewDescribeQuotaRequest())
	check(err)
	expect(len(quotas.Response.QuotaSet) > 0, true, "quotas")
}

func remove(client *clb.Client, lb, web *string, registered *clb.RegisterTargetsRequest) {
	deregister := clb.NewDeregisterTargetsRequest()
	deregister.LoadBalancerId = lb
	deregister.ListenerId = web
	deregister.LocationId = registered.LocationId
	deregister.Targets = registered.Targets
	deregistered, err := client.DeregisterTargets(deregister)
	check(err)
	wait(client, deregistered.Response.RequestId)

	deleteListener := clb.NewDeleteListenerRequest()
	deleteListener.LoadBalancerId = lb
	deleteListener.ListenerId = web
	deletedListener, err := client.DeleteListener(deleteListener)
	check(err)
	wait(client, deletedListener.Response.RequestId)

	request := clb.NewDeleteLoadBalancerRequest()
	request.LoadBalancerIds = []*string{lb}
	deleted, err := client.DeleteLoadBalancer(request)
	check(err)
	wait(client, deleted.Response.RequestId)
	described := clb.NewDescribeLoadBalancersRequest()
	described.LoadBalancerIds = []*string{lb}
	gone, err := client.DescribeLoadBalancers(described)
	check(err)
	expect(*gone.Response.TotalCount, uint64(0), "gone")
}

func failures() {
	client := connect("POST", os.Getenv("CLOUD_KEY"))
	listen := clb.NewCreateListenerRequest()
	listen.LoadBalancerId = text("lb-absent00")
	_, err := client.CreateListener(listen)
	fails(err, "MissingParameter")
	listen.Ports = []*int64{number(80)}
	listen.Protocol = text("TCP")
	_, err = client.CreateListener(listen)
	fails(err, "InvalidParameter")

	remove := clb.NewDeleteLoadBalancerRequest()
	remove.LoadBalancerIds = []*string{text("lb-absent00")}
	_, err = client.DeleteLoadBalancer(remove)
	fails(err, "InvalidParameter.LBIdNotFound")

	// What no typed client sends.
	send("InvalidParameter", map[string]any{"LoadBalancerId": 1})
	send("UnknownParameter", map[string]any{"LoadBalancerId": "lb-absent00", "Colour": "red"})

	for _, method := range []string{"POST", "GET"} {
		_, err = connect(method, "other").DescribeQuota(clb.NewDescribeQuotaRequest())
		fails(err, "AuthFailure.SignatureFailure")
	}
}

// send sends a request to list listeners that has to fail.
func send(code string, parameters map[string]any) {
	settings := profile.NewClientProfile()
	settings.HttpProfile.Endpoint = os.Getenv("CLOUD_ADDRESS")
	settings.HttpProfile.Scheme = "HTTP"
	credential := common.NewCredential(os.Getenv("CLOUD_ID"), os.Getenv("CLOUD_KEY"))
	client := common.NewCommonClient(credential, "ap-guangzhou", settings)
	request := untyped.NewCommonRequest("clb", "2018-03-17", "DescribeListeners")
	check(request.SetActionParameters(parameters))
	fails(client.Send(request, untyped.NewCommonResponse()), code)
}

func check(err error) {
	if err != nil {
		fail(err.Error())
	}
	steps++
}

func fails(err error, code string) {
	var found *failure.TencentCloudSDKError
	if !errors.As(err, &found) {
		fail(fmt.Sprintf("expected %s, found %v", code, err))
	}
	expect(found.Code, code, found.Message)
	steps++
}

func expect(found, expected any, what string) {
	if found != expected {
		fail(fmt.Sprintf("%s: expected %v, found %v", what, expected, found))
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}
