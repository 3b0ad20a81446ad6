"""One description of an AI training cluster; cloud, hosts, guests and switches from it."""
