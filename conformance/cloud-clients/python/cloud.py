"""What the programs here share: clients of the server under test, tasks, expected errors.

The server's address and a credential come from the environment: CLOUD_ADDRESS, CLOUD_ID,
CLOUD_KEY.
"""

import os
import time
import warnings

from tencentcloud.common import credential
from tencentcloud.common.exception.tencent_cloud_sdk_exception import TencentCloudSDKException
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile

# A member of an answer that the SDK's model lacks is a warning.
warnings.simplefilter("error")
# Later versions of Python warn of what the SDK itself does.
warnings.filterwarnings("ignore", category=DeprecationWarning, module="tencentcloud")

ADDRESS = os.environ["CLOUD_ADDRESS"]
ID = os.environ["CLOUD_ID"]
KEY = os.environ["CLOUD_KEY"]
REGION = "ap-guangzhou"

RUNNING = 2
DONE = 0


def client(
    kind,
    method="POST",
    id=ID,
    key=KEY,
    token=None,
    region=REGION,
    is_payload_signed=True,
    signature="TC3-HMAC-SHA256",
):
    """A client of this class, such as ClbClient."""
    http = HttpProfile(protocol="http", endpoint=ADDRESS, reqMethod=method, reqTimeout=60)
    profile = ClientProfile(signMethod=signature, httpProfile=http)
    profile.unsignedPayload = not is_payload_signed
    profile.retryer = SignsAnew()
    return kind(credential.Credential(id, key, token), region, profile)


class SignsAnew:
    """Repeats a call that the server does not perform because its signature was used: two equal
    writes of one second have one. The SDK signs each attempt. (Its own StandardRetryer goes on
    after an attempt that succeeded.)"""

    def send_request(self, send):
        for _ in range(5):
            try:
                return send()
            except TencentCloudSDKException as error:
                if error.get_code() != "RequestLimitExceeded":
                    raise
                time.sleep(1)
        return send()


def until_done(clb, models, answer):
    """Waits for the task that an answer left, and returns the answer."""
    request = models.DescribeTaskStatusRequest()
    request.TaskId = answer.RequestId
    while True:
        task = clb.DescribeTaskStatus(request)
        if task.Status != RUNNING:
            assert task.Status == DONE, (task.Status, task.Message)
            return answer
        time.sleep(0.01)


def code_of(call, *words):
    """The code of a call that has to fail."""
    try:
        answer = call(*words)
    except TencentCloudSDKException as error:
        return error.get_code()
    raise AssertionError(f"{words} succeeded: {answer}")


def expect(found, expected, what):
    assert found == expected, f"{what}: expected {expected!r}, found {found!r}"


def ended(steps):
    """The last line of each program, which says how much it did."""
    print(f"{steps} steps passed")
