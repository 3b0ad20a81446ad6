"""A simulated IBM Cloud on one loopback port.

It answers what Pulumi's and Terraform's IBM provider and IBM's own clients ask for VPC
resources: the VPC API, IAM tokens, the resource manager, global search and tagging. What it
does not do stands in docs/simulator.md.
"""

import base64
import json


def token() -> str:
    """A bearer token: shaped like IAM's, with the claims that the provider reads, no secret."""

    def part(value: object) -> str:
        raw = json.dumps(value, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    header = {"alg": "HS256", "typ": "JWT"}
    claims = {
        "id": "IBMid-simulated",
        "iam_id": "IBMid-simulated",
        "iss": "https://iam.cloud.ibm.com/identity",
        "account": {"bss": ACCOUNT},
        "exp": 4_102_444_800,
    }
    return ".".join([part(header), part(claims), "c2ltdWxhdGVk"])


ACCOUNT = "0123456789abcdef0123456789abcdef"
"""The one account that there is."""


def environment(url: str, region: str = "us-east") -> dict[str, str]:
    """Variables that point the provider and IBM's VPC client at the simulator.

    Args:
        url: Such as ``http://127.0.0.1:40123``.
        region: Region that the provider asks for.
    """
    services = ("IAM", "RESOURCE_MANAGEMENT", "RESOURCE_CONTROLLER", "GS", "GT")
    return {
        "IC_IAM_TOKEN": token(),
        "IC_REGION": region,
        "IBMCLOUD_IS_NG_API_ENDPOINT": f"{url}/v1",
        **{f"IBMCLOUD_{service}_API_ENDPOINT": url for service in services},
        "VPC_URL": f"{url}/v1",
        "VPC_AUTH_TYPE": "noauth",
    }
