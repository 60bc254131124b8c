"""tccli, a process for each command: the life of a load balancer, and commands that fail with
the exit code and the text of an error of the API."""

import json
import os
import subprocess
import sys

ADDRESS = os.environ["CLOUD_ADDRESS"]
STEPS = 0
API_ERROR = 255


def run(*words, key=None, service="clb"):
    global STEPS
    STEPS += 1
    environment = {
        **os.environ,
        "TENCENTCLOUD_SECRET_ID": os.environ["CLOUD_ID"],
        "TENCENTCLOUD_SECRET_KEY": key or os.environ["CLOUD_KEY"],
        "TENCENTCLOUD_REGION": "ap-guangzhou",
    }
    main = "import sys; from tccli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", main, service, *words, "--endpoint", f"http://{ADDRESS}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def ok(*words, **more):
    ended = run(*words, **more)
    assert ended.returncode == 0, f"{words}: {ended.stdout}{ended.stderr}"
    return json.loads(ended.stdout)


def done(*words):
    """Runs a command and waits for its task, as tccli itself does."""
    answer = ok(*words)
    waiter = "{'expr':'Status','to':0,'timeout':60,'interval':1}"
    ok("DescribeTaskStatus", "--TaskId", answer["RequestId"], "--waiter", waiter)
    return answer


def fails(code, *words, **more):
    ended = run(*words, **more)
    assert ended.returncode == API_ERROR, f"{words}: {ended}"
    assert code in ended.stdout + ended.stderr, f"{words}: {ended.stdout}{ended.stderr}"


created = done("CreateLoadBalancer", "--LoadBalancerType", "OPEN")
lb = ("--LoadBalancerId", created["LoadBalancerIds"][0])
listener = done(
    "CreateListener", *lb, "--Ports", "80", "--Protocol", "TCP", "--cli-unfold-argument",
    "--HealthCheck.SourceIpType", "1",
)
http = done("CreateListener", *lb, "--Ports", "[8080]", "--Protocol", "HTTP")
of_http = (*lb, "--ListenerId", http["ListenerIds"][0])
of_tcp = (*lb, "--ListenerId", listener["ListenerIds"][0])
done("CreateRule", *of_http, "--Rules", json.dumps([{"Domain": "a.example", "Url": "/"}]))
targets = ("--Targets", json.dumps([{"EniIp": "10.0.0.9", "Port": 80}]))
done("RegisterTargets", *of_tcp, *targets)
health = ok("DescribeTargetHealth", "--LoadBalancerIds", json.dumps(created["LoadBalancerIds"]))
assert health["LoadBalancers"][0]["Listeners"][0]["Rules"][0]["Targets"][0]["IP"] == "10.0.0.9"
check = ok("DescribeListeners", *lb, "--filter", "Listeners[?Protocol=='TCP'].HealthCheck | [0]")
assert check["SourceIpType"] == 1, check
instances = ok("DescribeInstances", "--Filters",
               json.dumps([{"Name": "private-ip-address", "Values": ["10.0.0.9"]}]),
               service="cvm")
assert instances["TotalCount"] == 1

fails("InvalidParameter", "CreateListener", *lb, "--Ports", "81", "--Protocol", "TCP")
fails("InvalidParameterValue", "CreateListener", *lb, "--Ports", "[0]", "--Protocol", "TCP")
fails("InvalidParameter.LBIdNotFound", "DescribeListeners", "--LoadBalancerId", "lb-absent00")
fails("AuthFailure.SignatureFailure", "DescribeQuota", key="other")

done("DeregisterTargets", *of_tcp, *targets)
done("DeleteListener", *of_tcp)
done("DeleteLoadBalancer", "--LoadBalancerIds", json.dumps(created["LoadBalancerIds"]))
found = ok("DescribeLoadBalancers", "--LoadBalancerIds", json.dumps(created["LoadBalancerIds"]))
assert found["TotalCount"] == 0, found
print(f"{STEPS} steps passed")
