"""Pages of the API's lists."""

from rest_framework.pagination import PageNumberPagination


class Pages(PageNumberPagination):
    """`{count, next, previous, results}`; the client chooses up to 200 rows a page."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200
