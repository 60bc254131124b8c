// Drives the CLB API with the SDK for Node.js, which signs the host without its port: the life of
// a load balancer with POST and with GET, then requests that have to fail, each with its code.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import clb from "tencentcloud-sdk-nodejs/tencentcloud/services/clb/index.js";

const { CLOUD_ADDRESS, CLOUD_ID, CLOUD_KEY } = process.env;
const RUNNING = 2;
const DONE = 0;
let steps = 0;

function connect(method, more = {}) {
  return new clb.clb.v20180317.Client({
    credential: { secretId: CLOUD_ID, secretKey: CLOUD_KEY, ...more },
    region: "ap-guangzhou",
    profile: {
      httpProfile: { endpoint: CLOUD_ADDRESS, protocol: "http://", reqMethod: method },
    },
  });
}

async function call(client, action, parameters = {}) {
  steps += 1;
  return client[action](parameters);
}

/// Sends a write and waits for its task.
async function write(client, action, parameters) {
  const answer = await call(client, action, parameters);
  for (;;) {
    const task = await client.DescribeTaskStatus({ TaskId: answer.RequestId });
    if (task.Status !== RUNNING) {
      assert.equal(task.Status, DONE, task.Message);
      return answer;
    }
    await sleep(10);
  }
}

async function life(client, name) {
  const created = await write(client, "CreateLoadBalancer", {
    LoadBalancerType: "OPEN",
    LoadBalancerName: name,
  });
  const [lb] = created.LoadBalancerIds;
  const listener = async (members) => {
    const made = await write(client, "CreateListener", { LoadBalancerId: lb, ...members });
    return made.ListenerIds[0];
  };
  const http = await listener({ Ports: [80], Protocol: "HTTP", KeepaliveEnable: 1 });
  const check = { HealthSwitch: 1, SourceIpType: 1 };
  const tcp = await listener({ Ports: [8080], Protocol: "TCP", HealthCheck: check });
  const of_http = { LoadBalancerId: lb, ListenerId: http };
  const ruled = await write(client, "CreateRule", {
    ...of_http,
    Rules: [{ Domain: "a.example", Url: "/" }],
  });
  const targets = {
    ...of_http,
    LocationId: ruled.LocationIds[0],
    Targets: [{ EniIp: "10.0.0.9", Port: 80, Weight: 20 }],
  };
  await write(client, "RegisterTargets", targets);
  const found = await call(client, "DescribeListeners", { LoadBalancerId: lb });
  assert.equal(found.TotalCount, 2);
  const by_id = new Map(found.Listeners.map((listener) => [listener.ListenerId, listener]));
  assert.equal(by_id.get(http).KeepaliveEnable, 1);
  assert.equal(by_id.get(tcp).HealthCheck.SourceIpType, 1);
  const bound = await call(client, "DescribeTargets", { LoadBalancerId: lb });
  const rules = bound.Listeners.find((listener) => listener.ListenerId === http).Rules;
  assert.equal(rules[0].Targets[0].Weight, 20);
  const health = await call(client, "DescribeTargetHealth", { LoadBalancerIds: [lb] });
  const listeners = health.LoadBalancers[0].Listeners;
  const target = listeners.find((found) => found.ListenerId === http).Rules[0].Targets[0];
  assert.equal(target.HealthStatusDetail, target.HealthStatusDetial);
  await write(client, "DeregisterTargets", targets);
  await write(client, "DeleteListener", of_http);
  await write(client, "DeleteLoadBalancer", { LoadBalancerIds: [lb] });
  const gone = await call(client, "DescribeLoadBalancers", { LoadBalancerIds: [lb] });
  assert.equal(gone.TotalCount, 0);
}

async function fails(code, client, action, parameters) {
  await assert.rejects(call(client, action, parameters), { code }, `${action}: ${code}`);
}

async function failures() {
  const client = connect("POST");
  const listener = { LoadBalancerId: "lb-absent00", Protocol: "TCP", Ports: [80] };
  await fails("InvalidParameter", client, "CreateListener", listener);
  await fails("InvalidParameter", client, "CreateListener", { ...listener, Ports: "80" });
  await fails("UnknownParameter", client, "CreateListener", { ...listener, Colour: "red" });
  await fails("MissingParameter", client, "CreateLoadBalancer", {});
  await fails("InvalidParameter.LBIdNotFound", client, "DescribeListeners", {
    LoadBalancerId: "lb-absent00",
  });
  for (const method of ["POST", "GET"]) {
    const other = connect(method, { secretKey: "other" });
    await fails("AuthFailure.SignatureFailure", other, "DescribeQuota", {});
  }
  await fails("AuthFailure.SecretIdNotFound", connect("POST", { secretId: "absent" }),
    "DescribeQuota", {});
  // The SDK takes the time from the clock.
  const clock = Date.now;
  const RealDate = Date;
  for (const seconds of [310, -310]) {
    globalThis.Date = class extends RealDate {
      constructor(...words) {
        if (words.length === 0) super(clock() + seconds * 1000);
        else super(...words);
      }
      static now() {
        return clock() + seconds * 1000;
      }
    };
    await fails("AuthFailure.SignatureExpire", client, "DescribeQuota", {});
  }
  globalThis.Date = RealDate;
}

for (const method of ["POST", "GET"]) {
  await life(connect(method), method);
}
await failures();
console.log(`${steps} steps passed`);
